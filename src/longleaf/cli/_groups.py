"""Groups of options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Result = TypeVar("Result")


def takes(**groups: Callable[..., Any]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Replace one parameter of a command, or of a group, with all options of a function.

    With ``@takes(words=word_settings)`` the command line shows the options of ``word_settings`` in place of
    the parameter ``words``, and the command receives the function's return value.
    """
    options = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    def decorate(command: Callable[..., Result]) -> Callable[..., Result]:
        shown: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
            shown += options[name].values() if name in groups else [parameter]
        shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]

        @wraps(command)
        def run(**given: Any) -> Result:
            for name, group in groups.items():
                given[name] = group(**{option: given.pop(option) for option in options[name]})
            return command(**given)

        vars(run)["__signature__"] = inspect.Signature(shown)  # Typer builds the command line from this
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return run

    return decorate
