"""One declarative Kubernetes API for GPU inference, training, immutable datasets and managed agents."""
