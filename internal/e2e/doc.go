// Package e2e tests the whole of eppctl from outside: the real binary, a real
// Envoy and simulated engines that speak the real interfaces. It needs an Envoy
// (`make test` fetches one) and has no code of its own to import.
package e2e
