"""Options that several commands take together, written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

Command = Callable[..., None]


def takes(**groups: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command all options of a function in the place of one parameter.

    Under ``@takes(words=word_settings)`` the command line shows the options of ``word_settings`` where the
    command has its parameter ``words``, and the command gets what the function makes of them.
    """
    options = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    def decorate(command: Command) -> Command:
        shown: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
            shown += options[name].values() if name in groups else [parameter]
        shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]

        @wraps(command)
        def run(**given: Any) -> None:
            for name, group in groups.items():
                given[name] = group(**{option: given.pop(option) for option in options[name]})
            command(**given)

        vars(run)["__signature__"] = inspect.Signature(shown)  # what the command line is made from
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return run

    return decorate
