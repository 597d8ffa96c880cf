//go:build !race

package index

const raceBuild = false
