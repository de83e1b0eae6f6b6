package scratch

import "os"

// OwnedByUser reports whether a file belongs to the user that runs this process: the folder for temporary files is
// this user's own there.
func OwnedByUser(os.FileInfo) bool { return true }
