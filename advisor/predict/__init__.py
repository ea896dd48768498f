"""``predict(trace, gpu, num_gpus)``: time and memory of one iteration on a GPU of the catalog."""

from advisor.predict.iteration import predict, predict_counts

__all__ = ["predict", "predict_counts"]
