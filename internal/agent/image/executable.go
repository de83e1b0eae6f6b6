package image

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// howToBuild ends the errors about a program that no image can be made of.
const howToBuild = "build one with: GOOS=linux GOARCH=%s CGO_ENABLED=0 go build -o %s ./cmd/conformance, and name it with --binary"

// architectures are those that an agent is built for, by what ELF calls them.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// executable is a program that an image can be made of.
type executable struct {
	path     string
	size     int64
	platform v1.Platform
	// version is that of the program's module, or devel.
	version string
}

// inspect looks whether a file is a static program for Linux.
func inspect(path string) (*executable, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look at the program: %w", err)
	}
	file, err := elf.Open(path)
	if format := (*elf.FormatError)(nil); errors.As(err, &format) || errors.Is(err, io.EOF) { // or it is too short
		return nil, fmt.Errorf("%s is no program for Linux (%w); "+howToBuild, path, err, "amd64", "conformance-linux")
	}
	if err != nil {
		return nil, fmt.Errorf("look at the program: %w", err)
	}
	defer file.Close()
	arch := architectures[file.Machine]
	switch linux := file.OSABI == elf.ELFOSABI_NONE || file.OSABI == elf.ELFOSABI_LINUX; {
	case arch == "":
		return nil, fmt.Errorf("%s is for %s, and not for amd64 or arm64; "+howToBuild, path, machine(file.Machine), "amd64", "conformance-linux")
	case !linux || file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN:
		return nil, fmt.Errorf("%s is no program for Linux; "+howToBuild, path, arch, "conformance-linux")
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return nil, fmt.Errorf("%s is linked dynamically, and the image holds no library; "+howToBuild, path, arch, "conformance-static")
		}
	}
	e := &executable{path: path, size: info.Size(), platform: v1.Platform{OS: "linux", Architecture: arch}, version: "devel"}
	if built, err := buildinfo.ReadFile(path); err == nil && built.Main.Version != "" && built.Main.Version != "(devel)" {
		e.version = built.Main.Version
	}
	return e, nil
}

func machine(m elf.Machine) string { return strings.ToLower(strings.TrimPrefix(m.String(), "EM_")) }
