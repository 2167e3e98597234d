"""What is old and finished goes: in bounded bites, never what somebody may still need."""
