"""What every error message must look like."""

import pytest


def sentence_of(kind, call, most=250):
    """The message of the error that `call` raises: one line that ends in a full stop, no chained traceback."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < most
    assert caught.value.__cause__ is None
    return message
