package index

// stage is a point in the publication or withdrawal of a run whose order matters:
// see the table in docs/index.md. TestPublicationOrder stops at each.
type stage uint8

const (
	stageLength  stage = iota // a reader has the length, and next loads the array
	stageCover                // coverage up to block n is about to be published
	stageLink                 // the run is about to get its slot in its parent
	stageUnlink               // the run is about to lose it
	stageFree                 // its number is about to be free
	stageRelease              // coverage from block n on is about to go
)
