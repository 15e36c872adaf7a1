"""Names on a page, on a terminal and in a sentence: one set of characters that are never obeyed."""

import pytest

from pairflip import text

RANGES = ((0, 32), (127, 160), (0x061C, 0x061D), (0x200E, 0x2010), (0x2028, 0x202F), (0x2066, 0x206A), (0xD800, 0xD801))
RANGES += ((0xFEFF, 0xFF00), (0xFFFE, 0x10000))
CONTROL = [chr(c) for first, end in RANGES for c in range(first, end)]


@pytest.mark.parametrize("character", CONTROL, ids=lambda c: f"U+{ord(c):04X}")
def test_page_terminal_and_sentence_agree_on_what_is_a_control_character(character):
    name = f"a{character}b"
    for shown in (text.clean(name), text.visible(name), text.quoted(name), text.short(name)):
        assert character not in shown
        assert not any(text.is_control(c) for c in shown)


@pytest.mark.parametrize("name", ["température", "漢字", "naïve ☃", "a b"])
def test_letters_of_all_scripts_are_left_alone(name):
    assert text.clean(name) == text.visible(name) == text.short(name) == name


def test_line_ends_are_shown_as_such():
    assert text.clean("a\r\nb\u2028c\td") == "a↵b↵c d"
    assert text.visible("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert text.one_line("a\n  b") == "a b"


def test_long_names_lose_their_middle():
    long = "begin" + "x" * 100 + "end"
    for shown in (text.short(long), text.shorten(long, 40), text.quoted(long)):
        assert len(shown) <= 40
        assert "…" in shown
        assert shown.strip("'").startswith("begin")
        assert shown.strip("'").endswith("end")
