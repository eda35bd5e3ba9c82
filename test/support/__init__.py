"""What tests stand on: a real control plane, a view of its world, a fault proxy and the audit log."""
