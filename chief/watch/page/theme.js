// Light or dark, decided before anything is drawn: what was chosen here before, else what the system asks for.
(() => {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const chosen = () => {
    try {
      return localStorage.getItem('lockstep-theme');
    } catch {
      return null;  // storage is forbidden
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = chosen() ?? (system.matches ? 'dark' : 'light');
    document.dispatchEvent(new Event('theme'));
  };
  window.switchTheme = () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      // What the system asks for is not kept, so that the page goes on following it.
      if ((next === 'dark') === system.matches) localStorage.removeItem('lockstep-theme');
      else localStorage.setItem('lockstep-theme', next);
      apply();
    } catch {
      document.documentElement.dataset.theme = next;
      document.dispatchEvent(new Event('theme'));
    }
  };
  system.addEventListener('change', apply);
  apply();
})();
