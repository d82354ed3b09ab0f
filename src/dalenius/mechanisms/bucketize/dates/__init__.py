"""Publishing a bucketized table again as people come and leave: who stays keeps the bucket."""
