"""``python -m django_pgqueue.worker.exec_child``: a child or keeper made by exec; see ``processes``."""

import sys

import django


def main() -> None:
    """Set Django up and become what the arguments say."""
    django.setup()
    from .processes import be_from_arguments  # noqa: PLC0415 - needs the app registry

    be_from_arguments(sys.argv[1:])


if __name__ == "__main__":
    main()
