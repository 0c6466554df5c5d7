"""The service under load, beside a peer."""
