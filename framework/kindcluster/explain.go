package kindcluster

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"
)

// explained turns an error of kind into one that says what went wrong. kind's own error names the command, and hides
// what the command printed. said, if not nil, knows the stage.
func explained(err error, said *journal) error {
	if err == nil {
		return nil
	}
	text := ""
	if said != nil && said.last() != "" {
		text = " at stage \"" + said.last() + "\""
	}
	run := exec.RunErrorForError(err)
	if run == nil {
		return fmt.Errorf("kind failed%s: %w", text, err)
	}
	output := string(run.Output)
	image := missingImage(output)
	if len(run.Command) > 2 && run.Command[1] == "pull" {
		image = run.Command[len(run.Command)-1]
	}
	if image != "" {
		return fmt.Errorf("node image %s is not on this machine and cannot be pulled (%s): load it, or name another with --node-image",
			image, telling(output))
	}
	return fmt.Errorf("kind failed%s: `%s`: %s%s", text, shortened(run.PrettyCommand()), telling(output), inotifyHint(inotifyInstances()))
}

var (
	pullFailure = regexp.MustCompile(`Unable to find image '([^']+)' locally|pull access denied for ([^,\s]+)|failed to resolve reference "([^"]+)"`)
	tells       = regexp.MustCompile(`(?i)error|fail|cannot|denied|refused|no such|not found|unable|timed out|invalid`)
)

// missingImage is the image that a failed command could not pull.
func missingImage(output string) string {
	found := pullFailure.FindStringSubmatch(output)
	for i := 1; i < len(found); i++ {
		if found[i] != "" {
			return found[i]
		}
	}
	return ""
}

// telling are the last lines of a command's output that tell of a failure, or its last one.
func telling(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	var chosen []string
	for i := len(lines) - 1; i >= 0 && len(chosen) < 3; i-- {
		if line := strings.TrimSpace(lines[i]); tells.MatchString(line) {
			chosen = append([]string{shortened(line)}, chosen...)
		}
	}
	if len(chosen) == 0 {
		return shortened(strings.TrimSpace(lines[len(lines)-1]))
	}
	return strings.Join(chosen, "; ")
}

func shortened(text string) string {
	const most = 300
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// enoughInotify is what several nodes need, each with systemd, containerd and a kubelet of the same user.
const enoughInotify = 512

// inotifyHint names the most frequent cause for which a kubelet does not start, where it is likely.
func inotifyHint(instances int) string {
	if instances == 0 || instances >= enoughInotify {
		return ""
	}
	return fmt.Sprintf(" (fs.inotify.max_user_instances is %d here, too few for several nodes: `sysctl fs.inotify.max_user_instances=1024`)", instances)
}

// inotifyInstances is how many a user may have; 0 where that is not known.
func inotifyInstances() int {
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return n
}
