"""The paper, reproduced: planted problems, annealings, theory, figures, and a verdict on every claim."""
