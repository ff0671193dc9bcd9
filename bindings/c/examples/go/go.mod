module example.com/take

go 1.19
