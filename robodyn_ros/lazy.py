"""Values that an object computes when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar('Value')


class cached_property(Generic[Value]):
    """A method whose result replaces it as an attribute after the first use.

    It takes no lock, as `functools.cached_property` does before Python 3.12: one lock for all
    objects, which a process keeps forever if it is forked while another thread computes a value.
    Threads that use a value for the first time at once may both compute it.

    Parameters
    ----------
    function : callable
        Computes the value for an object.
    """

    def __init__(self, function: Callable[[Any], Value]):
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Keep the name under which objects store the value."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        """Return the value; it is found in the object without this method from then on."""
        if instance is None:
            return self
        value = self._function(instance)
        return instance.__dict__.setdefault(self._name, value)
