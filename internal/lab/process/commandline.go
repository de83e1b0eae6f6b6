package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Shell runs the commands of users.
const Shell = "/bin/sh"

// ShellLine are the arguments with which the shell runs a line of the user's, which may assign variables and hold several commands.
func ShellLine(line string) []string { return []string{"-c", line} }

// Startable returns an error if the first word of a command names no program. What a shell would have to expand first is not judged.
func Startable(command string) error {
	words := strings.Fields(command)
	if len(words) == 0 || strings.ContainsAny(words[0], "$`'\"\\={}()<>&|;~*?[!#") {
		return nil
	}
	program := words[0]
	if _, err := exec.LookPath(program); err == nil || !strings.Contains(program, "/") && OnSystemPath(program) {
		return nil
	}
	if info, err := os.Stat(program); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a folder: name a program", program)
		}
		return fmt.Errorf("%s may not be executed: make it executable (chmod +x)", program)
	}
	if shellWords := []string{"if", "for", "while", "until", "case", "exec", "test", "true", "false", ":"}; slices.Contains(shellWords, program) {
		return nil
	}
	return fmt.Errorf("there is no program %s: name one that exists, by its path or by a name in PATH", program)
}

// Fill replaces the placeholders of a command.
func Fill(command string, placeholders ...string) string {
	return strings.NewReplacer(placeholders...).Replace(command)
}

// SystemPath is where administrators' programs are, which an ordinary user's PATH does not name.
const SystemPath = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

// BeforeOwnPath is a PATH, and after it the user's own, by which commands that the user gives are found.
func BeforeOwnPath(path string) string {
	if own := os.Getenv("PATH"); own != "" {
		path += ":" + own
	}
	return path
}

// OnSystemPath reports whether a program is on SystemPath.
func OnSystemPath(program string) bool {
	return slices.ContainsFunc(strings.Split(SystemPath, ":"), func(dir string) bool {
		_, err := exec.LookPath(dir + "/" + program)
		return err == nil
	})
}
