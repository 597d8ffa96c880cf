//go:build race

package native_test

const raceBuild = true
