# SPDX-License-Identifier: Apache-2.0
"""What saker raises: one class for each code, each also the built-in class that fits it."""


class Error(Exception):
    """The base of all; ``code`` names the kind."""

    code = "internal"


class InvalidArgumentError(Error, ValueError):
    """The caller's fault: an option, a prompt, a view."""

    code = "invalid_argument"


class NotFoundError(Error, FileNotFoundError):
    """A model, adapter or file is missing."""

    code = "not_found"


class UnsupportedError(Error, NotImplementedError):
    """Valid, but this build or model cannot do it."""

    code = "unsupported"


class CorruptDataError(Error, ValueError):
    """A file or checkpoint breaks its format."""

    code = "corrupt_data"


class CapacityError(Error, MemoryError):
    """Memory or a queue is full."""

    code = "capacity"


class CancelledError(Error):
    """The request was cancelled."""

    code = "cancelled"


class InternalError(Error, RuntimeError):
    """A fault of saker itself."""

    code = "internal"


BY_CODE: dict[str, type[Error]] = {
    error.code: error
    for error in (
        InvalidArgumentError,
        NotFoundError,
        UnsupportedError,
        CorruptDataError,
        CapacityError,
        CancelledError,
        InternalError,
    )
}
