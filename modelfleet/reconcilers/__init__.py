"""One package per kind, each pure: observe, plan, status. The runtime carries out what they decide."""
