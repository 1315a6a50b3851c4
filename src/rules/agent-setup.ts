/** The name of the file that holds an agent's key for the service at this origin: nothing but the key. */
export function keyFileName(origin: string): string {
  // No two origins have one name: a key must never be sent to another.
  const name = origin.replace('://', '-').replaceAll(':', '+');
  return `${name.replaceAll(/[^\w.+-]/g, encodeURIComponent)}.key`;
}

/** How most MCP clients are told of this service: JSON for their configuration, on one line unless indented. */
export function mcpConfiguration(baseUrl: string, indent = 0): string {
  const headers = { Authorization: 'Bearer API_KEY' };
  const mcpServers = { masthead: { type: 'http', url: `${baseUrl}/mcp`, headers } };
  return JSON.stringify({ mcpServers }, null, indent);
}
