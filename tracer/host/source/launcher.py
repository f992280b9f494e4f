"""Runs launch lines in an open session: makes their arrays, checks them, launches."""

from pathlib import Path

from ....errors import nearest
from ..array import DeviceArray
from ..launch.arguments import ArgumentError
from ..module import Module
from ..session import Session
from .initial import DTYPES, initial_values
from .launch_line import ArrayArgument, LaunchLine, LineArgument


class LineLauncher:
    """Launches the lines of one source; `arrays` are those made so far, by name.

    Files of `=file.npy` are looked for in `folder`.
    """

    def __init__(self, gpu: Session, module: Module, folder: Path) -> None:
        self.arrays: dict[str, DeviceArray] = {}
        self._gpu = gpu
        self._module = module
        self._folder = folder

    def launch(self, line: LaunchLine) -> None:
        """Make what arrays are new, write those that say what they hold, and launch."""
        function = self._module.get_function(line.kernel)
        configured = function[line.grid, line.block, 0, line.shared]
        values = [self._value(line, argument) for argument in line.arguments]
        try:
            configured(*values)
        except ArgumentError as problem:
            at = line.arguments[problem.number - 1].column if problem.number else line.opening
            raise line.error(at, str(problem)) from None

    def _value(self, line: LaunchLine, argument: LineArgument) -> object:
        if not isinstance(argument, ArrayArgument):
            return argument.value
        array = self.arrays.get(argument.name)
        if array is None:
            array = self.arrays[argument.name] = self._make(line, argument)
        self._check_same(line, argument, array)
        self._write(array, argument.initial)
        return array

    def _check_same(self, line: LaunchLine, argument: ArrayArgument, array: DeviceArray) -> None:
        if not argument.type:
            return
        if (DTYPES[argument.type], argument.shape) != (array.dtype, array.shape):
            already = f"{array.dtype} of shape {array.shape}"
            problem = f"`{argument.name}` is an array already, {already}"
            raise line.error(argument.column, problem)

    def _make(self, line: LaunchLine, argument: ArrayArgument) -> DeviceArray:
        if not argument.type:
            example = f"expected its type and shape, as in {argument.name}:i32[1024]"
            close = nearest(argument.name, self.arrays)
            problem = f"there is no array `{argument.name}` yet{close}; {example}"
            raise line.error(argument.column, problem)
        return self._gpu.device_array(argument.shape, DTYPES[argument.type], argument.name)

    def _write(self, array: DeviceArray, initial: str) -> None:
        if initial == "zeros":
            array.fill(0)
        elif initial:
            values = initial_values(initial, array.shape, array.dtype, self._folder)
            array.copy_to_device(values)
