/** The JSON that an MCP tool answered, also where it stands between the marks around texts of others. */
export function toolAnswer(text: string): Record<string, unknown> {
  return JSON.parse(text.split('\n').find((line) => line.startsWith('{')) ?? '');
}
