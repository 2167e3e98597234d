"""`python -m orbit_sdk.cli`, the same as `orbit`."""

from orbit_sdk.cli import main

main()
