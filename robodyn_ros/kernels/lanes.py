"""Flags and numbers of the lanes of a vector, with which compiled code decides how to go on."""

from __future__ import annotations

from robodyn_ros.kernels.instructions import Instructions


class LaneInstructions(Instructions):
    """Instructions on flags, one for each lane, and on numbers that all lanes have in common."""

    def highest(self, value: str) -> str:
        """Return the largest number in any lane."""
        if self.lanes == 1:
            return value
        highest, *others = (self.emit(f'extractelement {self.real} {value}, i32 {lane}')
                            for lane in range(self.lanes))
        for other in others:
            more = self.emit(f'fcmp ogt double {other}, {highest}')
            highest = self.emit(f'select i1 {more}, double {other}, double {highest}')
        return highest

    def spread(self, value: str) -> str:
        """Return a double in every lane."""
        if self.lanes == 1:
            return value
        one = self.emit(f'insertelement {self.real} {self.pointers.undefined}, double {value}, '
                        'i32 0')
        return self.emit(f'shufflevector {self.real} {one}, {self.real} '
                         f'{self.pointers.undefined}, <{self.lanes} x i32> zeroinitializer')

    def some(self, flag: str) -> str:
        """Return whether a flag is set in some lane."""
        if self.lanes == 1:
            return flag
        word = self.emit(f'bitcast {self.flag} {flag} to i{self.lanes}')
        return self.emit(f'icmp ne i{self.lanes} {word}, 0')

    def less(self, a: str, b: str) -> str:
        """Return whether a is smaller, in each lane."""
        return self.emit(f'fcmp olt {self.real} {a}, {b}')

    def both(self, a: str, b: str) -> str:
        """Return whether both flags are set, in each lane."""
        return self.emit(f'and {self.flag} {a}, {b}')

    def either(self, a: str, b: str) -> str:
        """Return whether one of two flags is set, in each lane."""
        return self.emit(f'or {self.flag} {a}, {b}')

    def opposite(self, a: str) -> str:
        """Return the opposite flag of each lane."""
        every = 'true' if self.lanes == 1 else '<' + ', '.join(['i1 true'] * self.lanes) + '>'
        return self.emit(f'xor {self.flag} {a}, {every}')
