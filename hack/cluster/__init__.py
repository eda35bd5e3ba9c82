"""A Kubernetes cluster as supervised processes, without a container registry.

Parts come from pinned Go modules, Python wheels and Debian packages. Each instance has its own ports,
certificates, logs and data; what it started it stops by pid files, never by process name.
"""
