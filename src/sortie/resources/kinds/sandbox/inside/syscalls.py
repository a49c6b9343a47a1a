"""The system calls that a sandbox's code is refused, as a seccomp program.

Namespaces alone would leave these ways out or around a limit: a user namespace of its own (in it, a memory file system
of any size), memory that no process maps (memfd, System V segments), sockets whose address family has no namespace
(vsock reaches the host of a virtual machine), and the tracing of processes of the same user.
"""

from __future__ import annotations

import errno
import os
import struct

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF, of 32-bit words
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data, little-endian
_NEW_NAMESPACES = 0x7E020000
_FAMILIES = (1, 2, 10, 16)
"""unix, inet, inet6, netlink: all of them end in the sandbox's network namespace."""
_X32 = 0x40000000

_SAME = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
"""Numbers that all architectures share."""
_NUMBERS = {
    "x86_64": {
        "socket": 41, "clone": 56, "shmget": 29, "semget": 64, "msgget": 68, "ptrace": 101, "pivot_root": 155,
        "chroot": 161, "mount": 165, "umount2": 166, "sched_setaffinity": 203, "mq_open": 240, "add_key": 248,
        "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "memfd_create": 319, "bpf": 321, "userfaultfd": 323,
    },
    "aarch64": {
        "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "unshare": 97, "ptrace": 117,
        "sched_setaffinity": 122, "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198,
        "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "perf_event_open": 241,
        "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "kcmp": 272, "memfd_create": 279, "bpf": 280, "userfaultfd": 282,
    },
}  # fmt: skip
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def program() -> bytes:
    """The filter for this machine.

    Raises: OSError on an architecture whose system calls are not listed here.
    """
    machine = os.uname().machine
    if machine not in _NUMBERS:
        raise OSError(errno.ENOSYS, f"no list of refused system calls for {machine}; known: {', '.join(_NUMBERS)}")
    numbers = _NUMBERS[machine] | _SAME
    clone, socket, clone3 = numbers.pop("clone"), numbers.pop("socket"), numbers.pop("clone3")
    code = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, _AUDIT[machine], 1, 0), _refuse(errno.ENOSYS)]
    code.append(_step(_LOAD, _NUMBER))
    if machine == "x86_64":
        code += [_step(_AT_LEAST, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for number in sorted(numbers.values()):
        code += [_step(_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    # Its flags lie in memory, where a filter cannot look; the C library then takes clone.
    code += [_step(_EQUAL, clone3, 0, 1), _refuse(errno.ENOSYS)]
    code += [_step(_EQUAL, clone, 0, 4), _step(_LOAD, _FIRST_ARGUMENT), _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1)]
    code += [_refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
    code += [_step(_EQUAL, socket, 1, 0), _step(_RETURN, _ALLOW), _step(_LOAD, _FIRST_ARGUMENT)]
    for family in _FAMILIES:
        code += [_step(_EQUAL, family, 0, 1), _step(_RETURN, _ALLOW)]
    code.append(_refuse(errno.EAFNOSUPPORT))
    return b"".join(code)


def _step(operation: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, if_true, if_false, operand)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)
