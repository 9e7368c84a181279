export function tellStory() {}
