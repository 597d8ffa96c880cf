// Package page writes a replay as one file of HTML: charts of time to first token
// against load, and the table, without anything to be fetched.
package page
