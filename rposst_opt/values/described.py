"""How things with parameters are called: by the name of their class, and by all of their fields.

Losses and measures are described alike in tables, files and messages. A new class has nothing to declare for it: its
name is its class's, and its parameters are its fields.
"""

import re
from dataclasses import fields, is_dataclass
from typing import ClassVar

import numpy as np

WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # where a word begins inside a class's name


class Described:
    """Something that is called by its name and its parameters.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class DeadZone(Described):
    ...     low: float
    ...     high: float
    >>> DeadZone(-0.1, 0.3).label, DeadZone(-0.1, 0.3).describe()
    ('dead-zone:-0.1,0.3', {'name': 'dead-zone', 'low': -0.1, 'high': 0.3})
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """A class without a name of its own is called by its class's, in small letters."""
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = WORDS.sub("-", cls.__name__).lower()

    @property
    def parameters(self) -> dict[str, object]:
        """All fields of a dataclass; the public attributes of another object."""
        if is_dataclass(self):
            return {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def describe(self) -> dict[str, object]:
        """Name and parameters, as JSON writes them."""
        return {"name": self.name, **{name: as_json_value(value) for name, value in self.parameters.items()}}

    @property
    def label(self) -> str:
        """Name and parameters on one line, as the command line and files have them: ``huber:0.05``."""
        values = ",".join(_in_label(value) for value in self.parameters.values())
        return f"{self.name}:{values}" if values else self.name

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({shown})"


def as_json_value(value: object) -> object:
    """A parameter as JSON can say it; what it cannot say becomes text."""
    if isinstance(value, Described):
        return value.describe()
    if isinstance(value, np.ndarray | np.generic):
        return as_json_value(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(each) for each in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return repr(value)


def _in_label(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return value.label if isinstance(value, Described) else str(value)
    return repr(float(value))
