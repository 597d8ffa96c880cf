// Package eval is the published comparison: six workloads, three loads, the
// product beside other policies, what replicas, late scrapes and a slow pod cost.
// It decides what is run and what is made of it; replay/fleet runs it.
package eval
