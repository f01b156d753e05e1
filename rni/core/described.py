"""Former names of `rni.core.text_result`, for the modules that still use them."""

from rni.core.text_result import TextResult as Described  # noqa: F401
from rni.core.text_result import join_numbers as numbers  # noqa: F401
