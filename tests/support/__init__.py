"""What tests stand on: fresh databases, private servers that may be killed, real worker processes, polling."""
