//go:build !race

package eval

const raceBuild = false
