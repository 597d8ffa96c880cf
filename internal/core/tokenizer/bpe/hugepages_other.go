//go:build !linux

package bpe

func adviseHuge([]byte) {}
