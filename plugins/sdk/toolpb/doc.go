// Package toolpb is the wire form of a tool call: generated messages and the handshake both ends agree on.
package toolpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative tool.proto
