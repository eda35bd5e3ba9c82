"""The only HTTP to the API server, and the caches of what it says; knows no Model Fleet kind.

Bottom up: `auth` (who we are: `credentials`, `exec_plugin`, `kubeconfig`, `tls`, `proxy`), `transport`
(bytes, deadlines, the write guard), `client` (objects, preconditions, bounded writes), `reflector` (list and
watch), `store` and `cache` (what planners read). `errors` says what a failure means and whether to repeat.
"""
