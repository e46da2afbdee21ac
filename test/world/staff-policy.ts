// A policy made by commands: identities with the role staff may dial services with the role web.

export async function createStaffPolicy(cli: (...args: string[]) => Promise<unknown>, name: string): Promise<void> {
  const roles = ['--identity-roles', '#staff', '--service-roles', '#web']
  await cli('service-policy', 'create', name, '--type', 'Dial', ...roles)
}
