//go:build !linux

package main

func dropPages() {}
