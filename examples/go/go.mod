module example/stream

go 1.19
