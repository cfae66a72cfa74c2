"""Calling a large kernel by its address, so that it is compiled once and not again with every function that calls it.

Whatever a kernel calls becomes part of it: numba links it in, and LLVM optimises it and makes machine code of it once
more. With a kernel of a hundred lines that seven others call, this was half of the time of compiling. So a function
that is compiled `apart` has an entry: a place in memory with its address, which callers read when they call it. What is
kept on disk knows the place by its name; the address is there before any caller runs in a process (`Kernel.__call__`).

An entry is for arguments of its example's types. With others the function becomes a part of the caller, like any other.
"""

import ctypes
import inspect
from collections.abc import Callable
from typing import Any, ClassVar


class Entry:
    """Where compiled code finds the address of a function.

    Parameters
    ----------
    function
        The function itself.
    example
        Makes arguments of the types that it is called with.
    """

    _all: ClassVar[list["Entry"]] = []

    def __init__(self, function: Callable[..., Any], example: Callable[[], tuple[Any, ...]]) -> None:
        self._name, self._example = f"rposst_entry_{function.__name__}", example
        self._parameters = list(inspect.signature(function).parameters.values())
        self._address = ctypes.c_uint64(0)
        self._all.append(self)

    def open(self, dispatcher: Any) -> None:
        """Have the function compiled, or loaded if it is kept, and write its address down."""
        if self._address.value:
            return
        self._tell_names()
        types = self._types()
        dispatcher.compile(types)
        overload = dispatcher.overloads[types]
        self._address.value = overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name)

    def numba_type(self, dispatcher: Any) -> Any:
        """What numba is to take the function for where a kernel calls it."""
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        def call(typing_context: Any, *types: Any) -> tuple[Any, Callable[..., Any]]:
            signature = dispatcher._numba_type_.get_call_type(typing_context, types, {})
            if signature.args != self._types():
                return signature, _linked(dispatcher)
            self.open(dispatcher)
            return signature, self._by_address

        context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        call.__signature__ = inspect.Signature([context, *self._parameters])  # type: ignore[attr-defined]
        wrapped = intrinsic(call)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(wrapped)

    def _types(self) -> tuple[Any, ...]:
        from numba import typeof

        return tuple(map(typeof, self._example()))

    def _tell_names(self) -> None:
        """Tell LLVM the places of all entries by their names: without one, code that has its name cannot be loaded."""
        import llvmlite.binding

        for entry in self._all:
            llvmlite.binding.add_symbol(entry._name, ctypes.addressof(entry._address))

    def _by_address(self, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Write a call of the function that the entry leads to."""
        from llvmlite import ir
        from numba.core.cgutils import if_unlikely

        known, convention = builder.module.globals, context.call_conv
        place = known.get(self._name) or ir.GlobalVariable(builder.module, ir.IntType(64), self._name)
        kind = convention.get_function_type(signature.return_type, signature.args)
        function = builder.inttoptr(builder.load(place), kind.as_pointer())
        status, result = convention.call_function(builder, function, signature.return_type, signature.args, arguments)
        with if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result


def _linked(dispatcher: Any) -> Callable[..., Any]:
    """How to write a call of a function that becomes a part of the caller."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        overload = dispatcher.overloads[signature.args]
        context.active_code_library.add_linking_library(overload.library)
        return context.call_internal(builder, overload.fndesc, signature, arguments)

    return write
