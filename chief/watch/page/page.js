// Shows a job.
const job = await (await fetch('api/job')).json();
document.getElementById('job').textContent = `${job.job}: step ${job.step}`;
