"""The errors: a tree under :class:`Error`, each with its ``kind``."""


class Error(Exception):
    """An error of Annals; its text says what failed, why, and what to do."""

    kind: str = "other"


class Busy(Error):
    """Another process or thread holds a lock."""

    kind = "busy"


class Unique(Error):
    """Two rows would have the same key in a unique index."""

    kind = "unique"


class Reference(Error):
    """An enforced reference would be dangling."""

    kind = "reference"


class Conflict(Error):
    """Later changes stand against undoing one."""

    kind = "conflict"


class Refused(Error):
    """A check refuses the commit."""

    kind = "refused"


class NotFound(Error, KeyError):
    """There is no such row, table, field, index or file."""

    kind = "not_found"

    def __str__(self) -> str:
        return Exception.__str__(self)


class InUse(Error):
    """The id or the name is in use already."""

    kind = "in_use"


class Invalid(Error, ValueError):
    """An argument is wrong; nothing was changed."""

    kind = "invalid"


class SchemaMismatch(Error):
    """The file's schema isn't the program's."""

    kind = "schema_mismatch"


class Diverged(Error):
    """One journal isn't the beginning of another."""

    kind = "diverged"


class Forgotten(Error):
    """The history that is asked for isn't kept any more."""

    kind = "forgotten"


class NotAJournal(Error):
    """The file isn't an Annals journal."""

    kind = "not_a_journal"


class Unsupported(Error):
    """The file needs a newer version of Annals."""

    kind = "unsupported"


class Corrupt(Error):
    """The file is damaged."""

    kind = "corrupt"


class PageLost(Error):
    """A page of the image is damaged. The next try does without it; nothing is lost."""

    kind = "page_lost"


class Unapplied(Error):
    """The file holds a commit whose events don't apply."""

    kind = "unapplied"


class NeedsRecovery(Error):
    """Opening would have to recover."""

    kind = "needs_recovery"


class Aborted(Error):
    """The program rolled the transaction back."""

    kind = "aborted"


class Cancelled(Error):
    """The program stopped it."""

    kind = "cancelled"


class Unreachable(Error):
    """Another machine can't be reached."""

    kind = "unreachable"


class Unauthenticated(Error):
    """A token is missing, wrong or expired."""

    kind = "unauthenticated"


class Forbidden(Error):
    """The role of the token doesn't allow it."""

    kind = "forbidden"


class TooLarge(Error):
    """It is larger than the other machine takes."""

    kind = "too_large"


class NoSpace(Error):
    """The disk of the other machine is full."""

    kind = "no_space"


class Io(Error, OSError):
    """An I/O error."""

    kind = "io"


class UnknownOutcome(Error):
    """The commit was written, but whether it is durable is not known: reopen and look."""

    kind = "unknown_outcome"


class Closed(Error):
    """The database was closed: open it again."""

    kind = "closed"


class Poisoned(Error):
    """A failure or a fork made this handle unusable: open the database again."""

    kind = "poisoned"
