package spec

//go:generate go run ./generate ../../fixtures/spec ids.go
