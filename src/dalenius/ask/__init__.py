"""Asking a release: SQL in, estimates with error bars out.

>>> from dalenius.ask import ask, ask_many, Answer
"""

from dalenius.ask.asking import ask, ask_many
from dalenius.question.answer import Answer, AnswerRow
from dalenius.question.database import Limits

__all__ = ["Answer", "AnswerRow", "Limits", "ask", "ask_many"]
