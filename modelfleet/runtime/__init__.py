"""Controller machinery that knows no kind: queue, workers, executor, status writer, leader, lifecycle."""
