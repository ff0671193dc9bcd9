module ringflake.example/leases

go 1.19
