module github.com/eppctl/eppctl/bench

go 1.27.0

require (
	github.com/eppctl/eppctl v0.0.0
	github.com/zeebo/xxh3 v1.1.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/tinylib/msgp v1.6.5 // indirect
)

replace github.com/eppctl/eppctl => ..
