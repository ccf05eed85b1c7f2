module.exports = require('../absent.js');
