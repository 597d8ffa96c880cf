// Command eppctl picks, behind Envoy, the pod of an LLM fleet that already holds
// a prompt's KV blocks, and shows how it came to the pick.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)) }
